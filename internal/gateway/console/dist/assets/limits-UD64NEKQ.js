/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-T7W4FXOH.js";import"./chunk-WE5DYMEX.js";import"./chunk-NG73KH2L.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
