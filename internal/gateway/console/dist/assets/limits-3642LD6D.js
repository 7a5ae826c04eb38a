/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-WSVAKBSS.js";import"./chunk-EOU52FIG.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
