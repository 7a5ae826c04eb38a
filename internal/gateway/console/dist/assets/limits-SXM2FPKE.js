/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-5EMKG7YW.js";import"./chunk-WE5DYMEX.js";import"./chunk-NG73KH2L.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
