/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-WOCQ62QJ.js";import"./chunk-WE5DYMEX.js";import"./chunk-3U6UAR4H.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
