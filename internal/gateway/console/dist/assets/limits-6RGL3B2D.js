/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-W5BWMI6C.js";import"./chunk-ZFB4ECFN.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
